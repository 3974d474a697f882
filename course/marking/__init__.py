"""One workspace in, one verdict out: focused pytest and the lab notebook, in fresh processes side by side."""
