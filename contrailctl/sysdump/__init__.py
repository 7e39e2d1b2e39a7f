"""Everything that a bug report needs of a cluster, in one archive without secrets."""
