"""What eager calls need: arrays and where they are, programs, facts about graphs, a disk cache."""
