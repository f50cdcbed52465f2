"""What the mediator computes: surprise, values and rewards."""
