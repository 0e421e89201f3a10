"""Link classes of large mechanisms, and the table of quantities whose work of one body is rolled over them."""
