"""What a seller computes and releases."""
