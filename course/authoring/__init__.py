"""One source, three views: builds starters and solutions, executes notebooks, proves the labs."""
