"""How matrices come to be: from edges and other libraries, files, generators."""
