"""Matrix times matrix: the public call, its plan and its methods."""
