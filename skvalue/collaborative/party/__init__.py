"""What a party computes and releases."""
