"""What `voxgate bench quality` is made of: one file for each thing it measures, and what they share."""
