"""The query shell: one file for each concern, over a served proxy or an engine in this process."""
