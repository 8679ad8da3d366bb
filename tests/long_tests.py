"""Which tests are `long`, in one place: the share of their cases that the quick part runs.

What takes long is mostly one test over many cases: the quick part takes some of each, spread over
all parameters, the long part the others. A case asked for by its own id always runs.
"""

import math
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SHARE = {  # of the cases of a test, in the quick part
    "tests/algorithms/test_centrality.py::test_betweenness_is_that_of_networkx": 0.2,
    "tests/algorithms/test_centrality.py::test_betweenness_of_samples": 0.25,
    "tests/algorithms/test_centrality.py::test_real_graphs": 0.5,
    "tests/algorithms/test_centrality.py::test_traced_batched_and_differentiated": 0.0,
    "tests/algorithms/test_clustering.py::test_clustering_is_that_of_networkx": 0.25,
    "tests/algorithms/test_clustering.py::test_real_graphs": 0.34,
    "tests/algorithms/test_clustering.py::test_slopes_of_weighted_clustering": 0.0,
    "tests/algorithms/test_clustering.py::test_squares_are_those_of_networkx": 0.34,
    "tests/algorithms/test_communities.py::test_communities_of_real_graphs": 0.25,
    "tests/algorithms/test_communities.py::test_forests_of_random_graphs": 0.17,
    "tests/algorithms/test_communities.py::test_forests_of_real_graphs": 0.5,
    "tests/algorithms/test_communities.py::test_labels_by_the_rule": 0.25,
    "tests/algorithms/test_communities.py::test_louvain_is_as_good_as_that_of_networkx": 0.25,
    "tests/algorithms/test_communities.py::test_modularity_is_that_of_networkx": 0.25,
    "tests/algorithms/test_communities.py::test_slopes_of_modularity": 0.0,
    "tests/algorithms/test_connectivity.py::test_cores_are_those_of_networkx": 0.34,
    "tests/algorithms/test_connectivity.py::test_real_graphs": 0.34,
    "tests/algorithms/test_connectivity.py::test_strong_components_at_the_edge": 0.5,
    "tests/algorithms/test_connectivity.py::test_strong_components_of_larger_ones": 0.34,
    "tests/algorithms/test_connectivity.py::test_two_sides": 0.25,
    "tests/algorithms/test_independent.py::test_ghosts_and_traces": 0.0,
    "tests/algorithms/test_independent.py::test_matchings_are_as_large_as_those_of_scipy": 0.34,
    "tests/algorithms/test_independent.py::test_real_graphs": 0.34,
    "tests/algorithms/test_independent.py::test_sets_and_colours_of_random_graphs": 0.34,
    "tests/algorithms/test_paths.py::test_eccentricities_of_real_graphs": 0.34,
    "tests/algorithms/test_paths.py::test_generations_are_those_of_networkx": 0.34,
    "tests/algorithms/test_spectral.py::test_pairs_are_as_alike_as_networkx_says": 0.5,
    "tests/algorithms/test_spectral.py::test_scores_are_those_of_networkx": 0.25,
    "tests/algorithms/bfs/test_bfs_sources.py::test_forms": 0.5,
    "tests/algorithms/bfs/test_bfs_sources.py::test_searches_deeper_than_their_bits_go_one_by_one": 0.5,
    "tests/algorithms/bfs/test_bfs_tiles.py::test_a_directed_path_in_both_directions": 0.5,
    "tests/algorithms/bfs/test_bfs_tiles.py::test_every_way_is_the_definition": 0.25,
    "tests/algorithms/bfs/test_bfs_xla.py::test_levels_and_parents": 0.25,
    "tests/algorithms/bfs/test_bfs_xla.py::test_real_graphs": 0.1,
    "tests/algorithms/fixpoint/test_fixpoint_persistent.py::test_the_kernel_ends_where_the_loop_does": 0.5,
    "tests/algorithms/sssp/test_sssp_persistent.py::test_as_the_xla_form": 0.4,
    "tests/algorithms/sssp/test_sssp_real_graphs.py::test_real_graph": 0.1,
    "tests/algorithms/sssp/test_sssp_sources.py::test_sources": 0.5,
    "tests/algorithms/sssp/test_sssp_xla.py::test_equals_dijkstra_bit_by_bit": 0.25,
    "tests/algorithms/sssp/test_sssp_xla.py::test_stop_settles_what_is_below_the_threshold": 0.5,
    "tests/algorithms/test_gradients_by_differences.py::test_gradients": 0.2,
    "tests/algorithms/test_pagerank_xla.py::test_networkx": 0.4,
    "tests/algorithms/test_public.py::test_parents_are_a_tree_where_edges_add_nothing": 0.4,
    "tests/algorithms/test_sampling.py::test_every_neighbour_is_as_likely": 0.5,
    "tests/benchmarks/test_benchmarks.py::test_every_benchmark_runs": 0.3,
    "tests/formats/test_index_dtype.py::test_kept_by": 0.2,
    "tests/formats/test_tiled.py::test_tiles_are_the_non_empty_ones_in_order": 0.5,
    "tests/gradients/test_gradients.py::test_at_ties_the_smallest_index_wins": 0.4,
    "tests/gradients/test_gradients.py::test_both_modes_twice": 0.12,
    "tests/gradients/test_higher_orders.py::test_derivatives_of_a_product_compose_in_any_order": 0.5,
    "tests/kernels/bfs/test_bfs_kernel.py::test_any_degree": 0.1,
    "tests/kernels/bfs/test_bfs_kernel.py::test_low_degree": 0.15,
    "tests/kernels/bfs/test_tile_bfs_kernel.py::test_a_directed_path_is_walked_one_way": 0.15,
    "tests/kernels/bfs/test_tile_bfs_kernel.py::test_directed_with_a_remainder": 0.1,
    "tests/kernels/bfs/test_tile_bfs_kernel.py::test_named_graphs": 0.15,
    "tests/kernels/products/test_attention_kernel.py::test_cotangents": 0.3,
    "tests/kernels/products/test_attention_kernel.py::test_features_and_heads": 0.3,
    "tests/kernels/products/test_attention_kernel.py::test_narrow_keys_and_values": 0.15,
    "tests/kernels/products/test_attention_kernel.py::test_rows_of_all_lengths_cut_anywhere": 0.4,
    "tests/kernels/products/test_attention_kernel.py::test_scores_of_one_number_a_head": 0.3,
    "tests/kernels/products/test_sddmm_kernel.py::test_is_the_definition": 0.3,
    "tests/kernels/products/test_spmm_kernel.py::test_lowers_for_a_gpu_in_one_launch": 0.25,
    "tests/kernels/products/test_spmm_kernel.py::test_products": 0.2,
    "tests/kernels/products/test_spmm_kernel.py::test_tiles_and_ctas": 0.2,
    "tests/kernels/products/test_spmspv_kernel.py::test_against_the_definition": 0.2,
    "tests/kernels/products/test_spmspv_kernel.py::test_tile_sizes_and_remainder": 0.25,
    "tests/kernels/pull/test_pagerank_kernel.py::test_interpreted": 0.25,
    "tests/kernels/sssp/test_fixpoint_push.py::test_every_graph_in_buckets_and_without": 0.25,
    "tests/kernels/sssp/test_sssp_kernel.py::test_any_degree": 0.1,
    "tests/kernels/sssp/test_sssp_kernel.py::test_chains_and_cycles_of_length_zero": 0.25,
    "tests/kernels/sssp/test_sssp_kernel.py::test_low_degree": 0.15,
    "tests/networkx_backend/test_functions.py::test_as_networkx": 0.12,
    "tests/ops/test_arrays_as_entries.py::test_aggregate_is_the_definition": 0.3,
    "tests/ops/test_arrays_as_entries.py::test_gradients_in_both_modes_and_padding": 0.15,
    "tests/ops/test_attention.py::test_a_gpu_takes_scores_of_one_number_a_head": 0.2,
    "tests/ops/test_attention.py::test_equals_the_composition_and_so_do_gradients": 0.2,
    "tests/ops/test_attention.py::test_float64_is_computed_in_float64": 0.0,
    "tests/ops/test_attention.py::test_gradients_in_both_modes": 0.5,
    "tests/ops/test_attention.py::test_is_the_definition": 0.3,
    "tests/ops/test_attention.py::test_narrow_floats_are_added_in_wider_ones": 0.5,
    "tests/ops/test_attention.py::test_nothing_of_entries_times_heads_is_stored": 0.5,
    "tests/ops/test_attention.py::test_scores_of_users": 0.2,
    "tests/ops/test_attention.py::test_second_order": 0.0,
    "tests/ops/test_attention.py::test_vmap_and_jit": 0.0,
    "tests/ops/test_attention.py::test_what_a_gpu_runs_is_the_same": 0.15,
    "tests/ops/test_csr_vjp.py::test_both_cotangents": 0.25,
    "tests/ops/test_graph_batches.py::test_blocks_along_the_diagonal_and_back": 0.3,
    "tests/ops/test_graph_batches.py::test_normalize_is_the_definition": 0.3,
    "tests/ops/test_graphblas.py::test_equals_graphblas": 0.05,
    "tests/ops/test_graphblas.py::test_mxm_equals_graphblas": 0.25,
    "tests/ops/test_layers.py::test_gradients_in_both_modes_and_twice": 0.15,
    "tests/ops/test_layers.py::test_hessian_of_a_square": 0.3,
    "tests/ops/test_layers.py::test_padding_never_reaches_a_gradient": 0.3,
    "tests/ops/test_layers.py::test_vmap_of_values_and_gradients": 0.3,
    "tests/ops/test_mxm.py::test_every_format": 0.25,
    "tests/ops/test_mxm.py::test_every_method_is_the_definition": 0.1,
    "tests/ops/test_mxm.py::test_rows_are_spmspv": 0.3,
    "tests/ops/test_mxm.py::test_shapes_at_the_edge": 0.4,
    "tests/ops/test_mxm_layers.py::test_gradients_in_both_modes_and_twice": 0.15,
    "tests/ops/test_mxm_layers.py::test_vmap_over_values_and_over_everything": 0.4,
    "tests/ops/test_mxv.py::test_dense_vector_and_masks": 0.1,
    "tests/ops/test_mxv.py::test_every_method_is_the_definition": 0.1,
    "tests/ops/test_mxv.py::test_nothing_stored_gives_identities": 0.3,
    "tests/ops/test_operations.py::test_derivatives_and_padding": 0.4,
    "tests/ops/test_operations.py::test_every_format": 0.25,
    "tests/ops/test_operations.py::test_jit_and_vmap_agree_with_eager": 0.4,
    "tests/ops/test_sddmm.py::test_derivatives_of_ordinary_products_are_products": 0.0,
    "tests/ops/test_sddmm.py::test_gradients_in_both_modes": 0.15,
    "tests/ops/test_sddmm.py::test_is_the_definition": 0.5,
    "tests/ops/test_sddmm.py::test_second_order": 0.0,
    "tests/ops/test_spmm.py::test_gradients_in_both_modes": 0.15,
    "tests/ops/test_spmm.py::test_is_the_definition": 0.08,
    "tests/ops/test_spmm.py::test_nothing_stored_or_little": 0.3,
    "tests/ops/test_spmm.py::test_second_order": 0.0,
    "tests/ops/test_write_rule.py::test_every_combination": 0.15,
    "tests/project/test_cli.py::test_generators": 0.5,
    "tests/project/test_examples.py::test_example_runs": 0.0,
    "tests/project/test_real_graphs.py::test_bfs_of_a_file": 0.1,
}
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples spread over [0, 1) whatever the period of cases


def mark(items):
    """Marks as `long` what the quick part leaves out of `items`, before any is deselected."""
    cases = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in SHARE:
            cases.setdefault(name, []).append(item)
    for name, group in cases.items():
        alone = len(group) == 1 and "[" in group[0].nodeid  # asked for by its id
        for k, item in enumerate([] if alone else group):
            if k * GOLDEN % 1 >= SHARE[name]:
                item.add_marker(pytest.mark.long)
