"""Triangles about vertices and edges: clustering, trusses, centrality by triangles."""
