// The passes of the rewrite, one a file. Each returns whether it changed the graph; rewrite.cpp orders them.
#pragma once

#include "rewrite/editor.hpp"
#include "rewrite/rewrite.hpp"

namespace troupe {

/// Applies what the caller states about the graph's ends: inputs that are constants, input shapes, outputs wanted.
void specialise(graph& g, const rewrite_options& options);

/// Infers types and shapes in node order. What turns out to be known on the way loses its producer: nodes over constants become
/// constants or weight recipes, nodes whose outputs are all host-known go.
void infer_and_fold(graph& g);

/// Makes every graph output the output of a node, each of its own (Identity where needed), and removes what no output needs.
void finish_outputs(graph& g);

bool remove_noops(graph_editor& e);
bool merge_common(graph_editor& e);
bool merge_reshapes(graph_editor& e);
bool merge_transposes(graph_editor& e);
bool push_transposes(graph_editor& e);

bool fuse_activations(graph_editor& e);
bool fuse_norms(graph_editor& e);
bool fuse_rotary(graph_editor& e);
bool fuse_attention(graph_editor& e);
bool fuse_conv(graph_editor& e);
bool fuse_matmul(graph_editor& e);
bool fuse_elementwise(graph_editor& e);

} // namespace troupe
