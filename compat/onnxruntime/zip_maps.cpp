#include "compat/onnxruntime/zip_maps.hpp"

#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/status.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace troupe::ort {
namespace {

// Field numbers of onnx.proto.
constexpr uint64_t model_graph = 7, graph_node = 1;
constexpr uint64_t node_output = 2, node_operator = 4, node_attribute = 5;
constexpr uint64_t attribute_name = 1, attribute_ints = 8, attribute_strings = 9;

/// Labels in the order of the columns; one of the two lists is empty.
struct column_labels {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
};

void read_attribute(bytes rest, column_labels& labels) {
  std::string_view name;
  column_labels read;
  while (!rest.empty()) {
    const field f = next(rest);
    if (f.number == attribute_name)
      name = text_of(f.content);
    else if (f.number == attribute_strings)
      read.texts.emplace_back(text_of(f.content));
    else if (f.number == attribute_ints && f.content.empty())
      read.numbers.push_back(static_cast<int64_t>(f.value));
    else if (f.number == attribute_ints)
      for (bytes packed = f.content; !packed.empty();)
        read.numbers.push_back(static_cast<int64_t>(read_varint(packed)));
  }
  if (name == "classlabels_int64s")
    labels.numbers = std::move(read.numbers);
  else if (name == "classlabels_strings")
    labels.texts = std::move(read.texts);
}

template <class T>
zip_labels sorted(const std::vector<T>& labels) {
  zip_labels zip;
  zip.columns.resize(labels.size());
  std::iota(zip.columns.begin(), zip.columns.end(), size_t{0});
  std::ranges::stable_sort(zip.columns, {}, [&](size_t column) -> const T& { return labels[column]; });
  std::vector<T> in_order;
  for (const size_t column : zip.columns)
    in_order.push_back(labels[column]);
  zip.labels = tensor::of<T>({static_cast<int64_t>(labels.size())}, std::span<const T>(in_order));
  return zip;
}

void read_node(bytes rest, zips_by_name& zips) {
  std::string_view result, op;
  column_labels labels;
  for (bytes node = rest; !node.empty();) {
    const field f = next(node);
    if (f.number == node_output)
      result = text_of(f.content);
    else if (f.number == node_operator)
      op = text_of(f.content);
  }
  if (op != "ZipMap")
    return;
  while (!rest.empty())
    if (const field f = next(rest); f.number == node_attribute)
      read_attribute(f.content, labels);
  zips.emplace(result, labels.texts.empty() ? sorted(labels.numbers) : sorted(labels.texts));
}

/// A file, mapped; empty if that fails.
class mapped_file {
public:
  explicit mapped_file(const std::filesystem::path& file) {
    const int handle = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    if (handle >= 0 && fstat(handle, &about) == 0 && about.st_size > 0) {
      size_ = static_cast<size_t>(about.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
    }
    if (handle >= 0)
      close(handle);
  }
  ~mapped_file() {
    if (data_ != MAP_FAILED)
      munmap(data_, size_);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  bytes content() const { return data_ == MAP_FAILED ? bytes() : bytes(static_cast<const std::byte*>(data_), size_); }

private:
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
};

} // namespace

zips_by_name zips_in(bytes model) {
  zips_by_name zips;
  while (!model.empty()) {
    const field part = next(model);
    for (bytes graph = part.number == model_graph ? part.content : bytes(); !graph.empty();)
      if (const field f = next(graph); f.number == graph_node)
        read_node(f.content, zips);
  }
  return zips;
}

zips_by_name zips_in(const std::filesystem::path& file) {
  return zips_in(mapped_file(file).content());
}

OrtTypeInfo type_of(const zip_labels& zip) {
  OrtTypeInfo values =
      tensor_type({.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, .has_shape = false, .dims = {}, .symbols = {}});
  return sequence_type(map_type(element_type_of(zip.labels.type()), std::move(values)));
}

OrtValue zipped(const tensor& rows, const zip_labels& zip) {
  const auto classes = static_cast<int64_t>(zip.columns.size());
  if (rows.type() != dtype::float32 || rows.dims().empty() || rows.dims().back() != classes)
    reject("ZipMap: " + std::to_string(classes) + " labels for " + std::string(to_string(rows.type())) + " " +
           to_string(rows.dims()));
  OrtValue list{.kind = ONNX_TYPE_SEQUENCE, .held = {}, .key = zip.labels.type()};
  const auto numbers = rows.values<float>();
  for (size_t begin = 0; begin < numbers.size(); begin += zip.columns.size()) {
    tensor row(dtype::float32, {classes});
    std::ranges::transform(zip.columns, row.mutable_data<float>(),
                           [&](size_t column) { return numbers[begin + column]; });
    list.parts.push_back(zip.labels); // shared: GetValue copies it
    list.parts.push_back(std::move(row));
  }
  return list;
}

} // namespace troupe::ort
