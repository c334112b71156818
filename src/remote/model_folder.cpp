#include "remote/model_folder.hpp"

#include "base/mapped_memory.hpp"
#include "base/user_files.hpp"
#include "graph/bodies.hpp"
#include "loader/onnx_loader.hpp"
#include "wire/weights.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <utility>

namespace troupe::remote {
namespace {

namespace fs = std::filesystem;

/// Adds what tells one state of a file from another.
void add_state(hasher& h, const fs::path& file) {
  struct stat s {};
  const bool there = ::stat(file.c_str(), &s) == 0;
  h.add(file.native());
  h.add(there ? int64_t{s.st_size} : -1);
  h.add(int64_t{s.st_mtim.tv_sec});
  h.add(int64_t{s.st_mtim.tv_nsec});
}

void collect_leaves(const graph& g, std::vector<tensor>& leaves) {
  for (const value& v : g.values)
    if (v.constant && v.constant->leaf.defined() && v.type != dtype::string &&
        v.constant->leaf.bytes() > wire::inline_bytes)
      leaves.push_back(v.constant->leaf);
  for (const node& n : g.nodes)
    if (has_body(n))
      for (const node_body& body : bodies_of(n))
        collect_leaves(*body.program, leaves);
}

/// The leaves of a model that are looked for, in an order that is always the same; none if it cannot be loaded.
std::vector<tensor> leaves_of(const fs::path& model) {
  std::vector<tensor> leaves;
  try {
    collect_leaves(load_model(model), leaves);
  } catch (const error&) { // somebody else's problem
    leaves.clear();
  }
  return leaves;
}

} // namespace

fs::path default_model_index(const fs::path& folder) {
  fs::path cache = cache_folder();
  if (cache.empty())
    return cache;
  std::error_code problem;
  hasher h;
  h.add(fs::weakly_canonical(folder, problem).native());
  return cache / ("model-names-" + to_hex(h.digest()));
}

model_folder::model_folder(fs::path folder, fs::path index_file)
    : folder_(std::move(folder)), index_file_(std::move(index_file)) {}

std::unordered_map<hash128, tensor> model_folder::find(std::span<const hash128> wanted) {
  search s{.missing = {wanted.begin(), wanted.end()}, .found = {}};
  if (s.missing.empty())
    return {};
  const std::lock_guard lock(mutex_);
  read_index();
  refresh();
  for (const auto& [model, fingerprint] : fingerprints_)
    take_known(model, fingerprint, s);
  for (const auto& [model, fingerprint] : fingerprints_)
    take_unknown(model, fingerprint, s);
  write_index();
  return std::move(s.found);
}

/// Takes what the index says that a model has; forgets what it says if that is not so.
void model_folder::take_known(const fs::path& model, hash128 fingerprint, search& s) {
  const auto known = known_.find(fingerprint);
  if (known == known_.end() ||
      std::none_of(known->second.begin(), known->second.end(), [&](auto& h) { return s.missing.contains(h); }))
    return;
  const std::vector<tensor> leaves = leaves_of(model);
  bool right = leaves.size() == known->second.size();
  for (size_t i = 0; right && i < leaves.size(); ++i) {
    const hash128& content = known->second[i];
    if (!s.missing.contains(content))
      continue;
    right = content_hash(leaves[i]) == content;
    if (right && s.missing.erase(content) > 0)
      s.found.emplace(content, leaves[i]);
  }
  if (!right) {
    known_.erase(known);
    index_changed_ = true;
  }
}

/// Hashes a model that the index does not know, if something is still missing, and takes what it has of that.
void model_folder::take_unknown(const fs::path& model, hash128 fingerprint, search& s) {
  if (s.missing.empty() || known_.contains(fingerprint))
    return;
  hashes made;
  for (const tensor& leaf : leaves_of(model)) {
    made.push_back(content_hash(leaf));
    if (s.missing.erase(made.back()) > 0)
      s.found.emplace(made.back(), leaf);
    else
      release_mapped_pages(leaf.data(), static_cast<size_t>(leaf.bytes()));
  }
  known_.insert_or_assign(fingerprint, std::move(made));
  index_changed_ = true;
}

/// Looks which models are there, and forgets those that are not.
void model_folder::refresh() {
  fingerprints_.clear();
  std::map<fs::path, std::vector<fs::path>> models, others; // by the folder that they are in
  std::error_code problem;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder_, options, problem), end; !problem && at != end;
       at.increment(problem)) {
    std::error_code unreadable;
    if (at->is_regular_file(unreadable))
      (at->path().extension() == ".onnx" ? models : others)[at->path().parent_path()].push_back(at->path());
  }
  for (auto& [folder, files] : models) {
    std::vector<fs::path>& beside = others[folder];
    std::sort(beside.begin(), beside.end());
    for (const fs::path& model : files) {
      hasher h;
      add_state(h, model);
      for (const fs::path& other : beside)
        add_state(h, other);
      fingerprints_.emplace(model, h.digest());
    }
  }
  std::unordered_set<hash128> present;
  for (const auto& [model, fingerprint] : fingerprints_)
    present.insert(fingerprint);
  index_changed_ |= std::erase_if(known_, [&](const auto& entry) { return !present.contains(entry.first); }) > 0;
}

/// Each line is a model's fingerprint and the hashes of its leaves; lines that are anything else are passed over.
void model_folder::read_index() {
  if (std::exchange(index_read_, true) || index_file_.empty())
    return;
  std::ifstream file(index_file_);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    hashes all;
    std::string word;
    while (words >> word)
      if (const auto hash = from_hex(word))
        all.push_back(*hash);
    if (!all.empty())
      known_.insert_or_assign(all.front(), hashes(all.begin() + 1, all.end()));
  }
}

void model_folder::write_index() {
  if (!std::exchange(index_changed_, false) || index_file_.empty())
    return;
  std::string text;
  for (const auto& [fingerprint, leaves] : known_) {
    text += to_hex(fingerprint);
    for (const hash128& leaf : leaves)
      text.append(" ").append(to_hex(leaf));
    text += "\n";
  }
  replace_file(index_file_, std::as_bytes(std::span(text)));
}

} // namespace troupe::remote
