"""General helpers that are independent of data valuation."""
