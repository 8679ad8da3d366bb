"""Graphs over the devices of a mesh, made from parts that no device ever holds together."""

from .builders.edges import shard_edges as shard_edges
from .builders.files import shard_file as shard_file
from .builders.rmat import shard_rmat as shard_rmat
from .graph import ShardedGraph as ShardedGraph
from .graph import row_sharded_mxm as row_sharded_mxm
