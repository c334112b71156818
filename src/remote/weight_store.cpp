#include "remote/weight_store.hpp"

#include "base/error.hpp"
#include "base/user_files.hpp"
#include "graph/weight.hpp"

namespace troupe::remote {
namespace {

/// Files whose check is remembered; beyond, all are checked once more.
constexpr size_t max_verified = 1 << 16;

void check_content(const hash128& content, const tensor& leaf) {
  if (content_hash(leaf) != content)
    fail(errc::invalid_input, "a weight of {} bytes that has arrived does not have the content {} that was announced",
         leaf.bytes(), to_hex(content));
}

tensor tensor_in(std::shared_ptr<const mapped_file> file, dtype type, const shape& dims) {
  const void* data = file->bytes().data();
  return {type, dims, std::move(file), data};
}

} // namespace

std::filesystem::path default_weight_folder() {
  const std::filesystem::path cache = cache_folder();
  return cache.empty() ? cache : cache / "weights";
}

weight_store::weight_store(weight_store_options how) : folder_(std::move(how.folder), how.max_bytes) {}

tensor weight_store::find(const hash128& content, dtype type, const shape& dims) {
  if (tensor found = in_use(content); found.defined() || type == dtype::string)
    return found;
  auto file = folder_.open(content);
  if (!file)
    return {};
  const bool whole = static_cast<int64_t>(file->bytes().size()) == bytes_of(type, volume(dims));
  const tensor leaf = whole ? tensor_in(file, type, dims) : tensor();
  if (!whole || (!is_verified(content, *file) && content_hash(leaf) != content)) {
    folder_.remove(content);
    return {};
  }
  set_verified(content, *file);
  return note(content, leaf);
}

weight_writer weight_store::begin(const hash128& content, dtype type, shape dims) {
  weight_writer made;
  made.content_ = content;
  const int64_t bytes = bytes_of(type, volume(dims));
  if (type != dtype::string && bytes > 0)
    made.file_ = folder_.begin(content, bytes);
  made.destination_ =
      made.file_ ? tensor(type, std::move(dims), made.file_, made.file_->data()) : tensor(type, std::move(dims));
  return made;
}

tensor weight_store::commit(const weight_writer& written) {
  const tensor leaf = written.destination_;
  check_content(written.content_, leaf);
  if (written.file_) {
    try {
      // Mapped anew, read-only, so that its pages can be given back like those of any file. Before it has its name,
      // since then another process may remove it.
      const auto file = mapped_file::open(written.file_->path());
      if (folder_.keep(written.content_, *written.file_)) {
        set_verified(written.content_, *file);
        return note(written.content_, tensor_in(file, leaf.type(), leaf.dims()));
      }
    } catch (const error&) { // somebody has removed the part
    }
  }
  return note(written.content_, leaf);
}

tensor weight_store::share(const hash128& content, const tensor& leaf) {
  check_content(content, leaf);
  return note(content, leaf);
}

tensor weight_store::in_use(const hash128& content) const {
  const std::lock_guard lock(mutex_);
  const auto held = in_use_.find(content);
  return held ? tensor(held->type(), held->dims(), held, held->data()) : tensor();
}

/// Returns the leaf of that content which is in use already, else this one, which then is.
tensor weight_store::note(const hash128& content, const tensor& leaf) {
  const std::lock_guard lock(mutex_);
  auto held = in_use_.find(content);
  if (!held)
    in_use_.add(content, held = std::make_shared<const tensor>(leaf));
  return {held->type(), held->dims(), held, held->data()};
}

bool weight_store::is_verified(const hash128& content, const mapped_file& file) const {
  const std::lock_guard lock(mutex_);
  const auto found = verified_.find(content);
  return found != verified_.end() && found->second == file.identity();
}

void weight_store::set_verified(const hash128& content, const mapped_file& file) {
  const std::lock_guard lock(mutex_);
  if (verified_.size() >= max_verified)
    verified_.clear();
  verified_.insert_or_assign(content, file.identity());
}

} // namespace troupe::remote
