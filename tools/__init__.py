"""What makes the documentation: blocks of code that run, pictures, the notebook's page, the list of commands."""
