"""Numbers of nodes and of pairs: centralities, clustering, degrees, links."""
