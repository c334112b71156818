#include "plan/saved_plan.hpp"

#include "base/json_problem.hpp"

#include <fstream>

namespace troupe {
namespace {

using json = nlohmann::json;

/// No sensible plan is longer: a node takes some hundred bytes.
constexpr size_t max_file_bytes = size_t{1} << 30;

/// Reads parts of the file; its errors name the file and the place in it.
class plan_reader {
public:
  explicit plan_reader(const std::string& source) : source_(source) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(errc::invalid_plan, "{}: {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }

  const json& member(const json& object, const char* key, const std::string& where) const {
    if (!object.is_object() || !object.contains(key))
      refuse("{} has no \"{}\"", where, key);
    return object.at(key);
  }

  std::string text(const json& object, const char* key, const std::string& where) const {
    const json& found = member(object, key, where);
    if (!found.is_string())
      refuse("\"{}\" of {} is not a string", key, where);
    return found.get<std::string>();
  }

  const json& list(const json& object, const char* key, const std::string& where) const {
    const json& found = member(object, key, where);
    if (!found.is_array())
      refuse("\"{}\" of {} is not a list", key, where);
    return found;
  }

private:
  const std::string& source_;
};

json parse(std::string_view text, const plan_reader& reader) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    reader.refuse("not a plan: {}", json_problem(text, e));
  }
}

saved_chunk read_chunk(const plan_reader& reader, const json& entry, size_t index) {
  const std::string where = fmt::format("chunk {}", index);
  saved_chunk c{.device = reader.text(entry, "device", where)};
  for (const json& n : reader.list(entry, "nodes", where)) {
    const std::string node_where = fmt::format("node {} of chunk {}", c.nodes.size(), index);
    c.nodes.push_back({reader.text(n, "name", node_where), reader.text(n, "op", node_where), n.contains("inserted")});
  }
  return c;
}

plan_split read_split(const plan_reader& reader, const json& entry) {
  const std::string where = "\"split\"";
  const auto number = [&](const json& n, const std::string& what) {
    if (!n.is_number_integer())
      reader.refuse("{} of {} is not a whole number", what, where);
    return n.get<int64_t>();
  };
  plan_split split{static_cast<int>(number(reader.member(entry, "along", where), "\"along\"")), {}, {}};
  for (const json& name : reader.list(entry, "devices", where))
    split.team.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  for (const json& n : reader.list(entry, "begin", where))
    split.begin.push_back(number(n, "\"begin\""));
  return split;
}

} // namespace

std::shared_ptr<const saved_plan> parse_saved_plan(std::string_view text, const std::string& source) {
  const plan_reader reader(source);
  const json root = parse(text, reader);
  const json& version = reader.member(root, "troupe_plan", "the file");
  if (version != saved_plan_version)
    reader.refuse("plan version {} is not known; this troupe reads version {}",
                  version.is_number() ? version.dump() : "that is not a number", saved_plan_version);
  auto saved = std::make_shared<saved_plan>();
  saved->source = source;
  saved->structure = reader.text(reader.member(root, "model", "the file"), "structure", "\"model\"");
  for (const json& entry : reader.list(root, "chunks", "the file"))
    saved->chunks.push_back(read_chunk(reader, entry, saved->chunks.size()));
  if (root.contains("split"))
    saved->split = read_split(reader, root["split"]);
  hasher h;
  h.add(text);
  saved->key = h.digest();
  return saved;
}

std::shared_ptr<const saved_plan> read_saved_plan(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  for (char piece[65536]; in.read(piece, sizeof piece) || in.gcount() > 0;) {
    text.append(piece, static_cast<size_t>(in.gcount()));
    if (text.size() > max_file_bytes)
      fail(errc::invalid_plan, "{}: no plan is larger than {} bytes", file.string(), max_file_bytes);
  }
  if (!in.eof())
    fail(errc::io, "the plan '{}' cannot be read", file.string());
  return parse_saved_plan(text, file.string());
}

} // namespace troupe
