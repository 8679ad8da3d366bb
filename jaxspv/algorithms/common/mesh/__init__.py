"""What traversals on a mesh share: sparse frontiers, pushed edges."""
