"""Tools that know nothing of data valuation."""
