"""Numbers of nodes and of pairs: centralities, clustering, links."""
