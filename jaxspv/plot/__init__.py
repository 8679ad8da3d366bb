"""Pictures of matrices, graphs and runs: matplotlib's axes in, axes out; needs the extra `plot`."""

from .charts import degree_distribution as degree_distribution
from .charts import frontier as frontier
from .charts import spy as spy
from .charts import tiles as tiles
from .graphs import draw as draw
