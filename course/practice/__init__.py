"""What a learner does between two marks: the practice folder, their progress, the desk they sit at."""
