"""What every other folder may use: errors, results, safe files, progress."""
