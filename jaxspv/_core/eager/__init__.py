"""What eager calls keep in memory and on disk, and the line they print while compiling."""
