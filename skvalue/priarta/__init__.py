"""A buyer values sellers' data sets from summaries that keep their rows private."""
