"""How a buyer scores the summaries of sellers."""
