"""What the methods that train models on coalitions share."""
