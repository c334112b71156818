// troupe trace: reads trace files back: in figures, as a page, checked, and two of them compared. Also what writes them
// (--trace).
#include "cli/command.hpp"
#include "cli/trace_tables.hpp"

#include "base/printable.hpp"
#include "base/text_file.hpp"
#include "pages/trace_page.hpp"
#include "trace/check_trace.hpp"
#include "trace/read_trace.hpp"
#include "troupe/inspect.hpp"

#include <fmt/format.h>

namespace troupe::cli {
namespace {

struct trace_options {
  std::vector<std::filesystem::path> files;
  std::filesystem::path html;
  bool check = false, diff = false, json = false;
  size_t top = 10;
};

/// Does `f` with a file's text; errors name the file.
template <class F>
auto with_file(const std::filesystem::path& file, F&& f) {
  const std::string text =
      read_text(file, max_trace_bytes, fmt::format("'{}'", printable(file.string())), errc::invalid_input);
  try {
    return f(text);
  } catch (const error& e) {
    fail(e.code(), "'{}': {}", printable(file.string()), e.what());
  }
}

timeline read_file(const std::filesystem::path& file) {
  timeline t = with_file(file, [](const std::string& text) { return read_trace(text); });
  if (t.title.empty())
    t.title = file.filename().string();
  return t;
}

void check_files(const trace_options& args) {
  bool good = true;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& file : args.files) {
    const trace_problems found = with_file(file, [](const std::string& text) { return check_trace(text); });
    good = good && found.count == 0;
    all.push_back(
        {{"file", file.string()}, {"events", found.events}, {"problems", found.count}, {"listed", found.listed}});
    if (args.json)
      continue;
    fmt::print("{}: {} events, {} problems\n", printable(file.string()), found.events, found.count);
    for (const std::string& text : found.listed)
      fmt::print("  {}\n", text);
    if (found.count > found.listed.size())
      fmt::print("  and {} more\n", found.count - found.listed.size());
  }
  if (args.json)
    write_json(all);
  if (!good)
    throw CLI::RuntimeError(1);
}

void show(const trace_options& args) {
  const timeline t = read_file(args.files[0]);
  if (!args.html.empty())
    return write_and_tell(args.html, to_page(t), "trace");
  const trace_summary summary = summary_of(t, args.top);
  args.json ? write_json(json_of(t, summary)) : cli::print(t, summary);
}

void compare(const trace_options& args) {
  const timeline a = read_file(args.files[0]), b = read_file(args.files[1]);
  if (!args.html.empty())
    return write_and_tell(args.html, to_page(a, args.files[0].string(), b, args.files[1].string()), "trace");
  const trace_diff diff = diff_of(a, b);
  args.json ? write_json(nlohmann::ordered_json::parse(to_json(diff))) : cli::print(diff, args.top);
}

void run_trace_command(const trace_options& args) {
  if (args.check)
    return check_files(args);
  if (args.files.size() != (args.diff ? 2U : 1U))
    fail(errc::invalid_argument, "trace: {} files were given, {}", args.files.size(),
         args.diff ? "--diff compares two" : "one is shown; two are compared with --diff");
  args.diff ? compare(args) : show(args);
}

} // namespace

void add_trace_option(CLI::App& command, std::filesystem::path& file) {
  command.option_defaults()->group("Output");
  command
      .add_option("--trace", file,
                  "File for the timeline of a run: NAME.html, a page for any browser; NAME.paje, for ViTE and StarVZ; "
                  "NAME.rec, StarPU's tasks.rec; NAME.et, Chakra's execution traces, NAME.0.et … for each device; else "
                  "JSON for ui.perfetto.dev, chrome://tracing and `troupe trace`")
      ->type_name("FILE");
}

void write_trace(const std::filesystem::path& file, const run_trace& trace, const std::filesystem::path& model) {
  if (file.empty())
    return;
  const std::filesystem::path format = file.extension();
  if (format == ".rec")
    return write_and_tell(file, to_tasks_rec(trace), "trace");
  if (format == ".et") {
    const std::vector<std::string> texts = to_chakra(trace);
    for (size_t d = 0; d < texts.size(); ++d)
      write_and_tell(std::filesystem::path(file).replace_extension(fmt::format("{}.et", d)), texts[d], "trace");
    return;
  }
  timeline t = timeline_of(trace);
  const std::filesystem::path name = model.has_filename() ? model : model.parent_path(); // a folder's may end with '/'
  t.title = (name.filename() == "model.onnx" ? name.parent_path() : name).filename().string();
  write_and_tell(file,
                 format == ".html"   ? to_page(t)
                 : format == ".paje" ? to_paje(t)
                                     : to_chrome_json(t) + '\n',
                 "trace");
}

void add_trace(CLI::App& app) {
  const auto args = std::make_shared<trace_options>();
  CLI::App* command = app.add_subcommand("trace", "Show, check and compare what --trace has written");
  command->add_option("files", args->files, "Trace files (JSON); two with --diff")->type_name("FILE")->required();
  auto* check = command->add_flag("--check", args->check, "Check the files against the rules of the trace format");
  command
      ->add_flag("--diff", args->diff,
                 "What moved, got slower or faster, or is only in one, from the first file to the second")
      ->excludes(check);
  command->add_option("--html", args->html, "Write a page that shows the file, or both")
      ->type_name("FILE")
      ->excludes(check);
  command->add_option("--top", args->top, "Rows of each table")->capture_default_str();
  command->add_flag("--json", args->json, "Print JSON");
  command->callback([args] { run_trace_command(*args); });
}

} // namespace troupe::cli
