"""Components for Penstock, in a package of their own."""
