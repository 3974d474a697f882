"""What a notebook shows: the timeline of an Agent, the lab panel, and the finished names for its demo cells."""
