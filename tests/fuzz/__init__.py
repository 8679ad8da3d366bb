"""Random programs, graphs, compositions and files, against results that share no code."""
