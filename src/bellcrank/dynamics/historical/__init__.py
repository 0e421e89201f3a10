"""Methods of the papers that later methods have superseded, one file each, as their papers print them."""
