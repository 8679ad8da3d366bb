"""What eager calls keep: facts about graphs in memory, compiled programs on disk."""
