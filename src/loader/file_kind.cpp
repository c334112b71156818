#include "loader/file_kind.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {
namespace {

/// Bytes by which a kind of file is known, and what to say of it.
struct signature {
  size_t offset;
  std::string_view bytes; // in lower case where `ignores_case`
  std::string_view is;
  std::string_view advice;
  bool ignores_case = false;
};

constexpr std::string_view fetch_again = "the download gave a page, not the file; fetch it again";
constexpr std::string_view unpack = "unpack it and give the model in it";
constexpr std::string_view export_it = "export the model to ONNX";

constexpr auto signatures = std::to_array<signature>({
    {0, "version https://git-lfs.github.com/spec/", "a Git LFS pointer", "fetch the file itself with `git lfs pull`"},
    {0, "<!doctype html", "a web page (HTML)", fetch_again, true},
    {0, "<html", "a web page (HTML)", fetch_again, true},
    {0, "<?xml", "an XML file", fetch_again, true},
    {4, "ORTM", "a model in ONNX Runtime's own format (.ort)", "give the .onnx file that it was made from"},
    {4, "TFL3", "a TensorFlow Lite model", export_it},
    {0, "GGUF", "a GGUF model", export_it},
    {0, "\x89HDF\r\n", "an HDF5 file (a Keras model, perhaps)", export_it},
    {0, "PK\3\4", "a zip archive (or what PyTorch saves)", "unpack it, or export the model to ONNX"},
    {0, "\x1f\x8b", "a gzip archive", unpack},
    {257, "ustar", "a tar archive", unpack},
});

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// Web pages may begin with a byte order mark and blank lines.
std::string_view without_blanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

bool begins_with(std::string_view text, const signature& s) {
  if (s.ignores_case)
    text = without_blanks(text);
  if (text.size() < s.offset + s.bytes.size())
    return false;
  return std::equal(s.bytes.begin(), s.bytes.end(), text.begin() + static_cast<ptrdiff_t>(s.offset),
                    [&](char wanted, char c) { return wanted == (s.ignores_case ? lower(c) : c); });
}

} // namespace

void refuse_other_kinds(std::span<const std::byte> bytes, const std::string& wanted) {
  constexpr size_t longest = 1024; // of what a signature may be looked for in
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), longest));
  for (const signature& s : signatures)
    if (begins_with(text, s))
      fail(errc::invalid_model, "it is {}, not {}: {}", s.is, wanted, s.advice);
}

} // namespace troupe
