// The words that options have in text: on the command line, in Python, in variables of the environment.
//
//   options.policy = troupe::value_of(troupe::policy_words, "policy", "heft");
#pragma once

#include "troupe/error.hpp"
#include "troupe/options.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// A word, and the value that it means.
template <class T>
struct option_word {
  std::string_view text;
  T value;
};

inline constexpr option_word<placement_policy> policy_words[] = {
    {"single", placement_policy::single},
    {"round-robin", placement_policy::round_robin},
    {"weighted", placement_policy::weighted},
    {"greedy-memory", placement_policy::greedy_memory},
    {"heft", placement_policy::heft},
    {"dmda", placement_policy::dmda},
    {"pipeline", placement_policy::pipeline},
    {"peft", placement_policy::peft},
    {"cpop", placement_policy::cpop},
    {"min-min", placement_policy::min_min},
    {"local-search", placement_policy::local_search},
    {"dls", placement_policy::dls},
    {"split", placement_policy::split},
    {"lookahead", placement_policy::lookahead},
    {"iheft", placement_policy::iheft},
    {"hbmct", placement_policy::hbmct},
    {"dcp", placement_policy::dcp},
    {"optimal", placement_policy::optimal},
    {"plug-in", placement_policy::plug_in},
};
inline constexpr option_word<strategy> strategy_words[] = {
    {"standard", strategy::standard},
    {"none", strategy::none},
    {"data-parallel", strategy::data_parallel},
    {"model-parallel", strategy::model_parallel},
    {"pipeline", strategy::pipeline},
    {"work-stealing", strategy::work_stealing},
    {"auto", strategy::automatic},
    {"plug-in", strategy::plug_in},
};
inline constexpr option_word<precision> precision_words[] = {
    {"fp32", precision::fp32}, {"fp16", precision::fp16}, {"auto", precision::automatic}};
inline constexpr option_word<objective> objective_words[] = {{"latency", objective::latency},
                                                             {"throughput", objective::throughput}};
inline constexpr option_word<share_rule> share_words[] = {
    {"equal", share_rule::equal}, {"weighted", share_rule::weighted}, {"adaptive", share_rule::adaptive}};
inline constexpr option_word<pipeline_schedule> schedule_words[] = {
    {"one-in-one-out", pipeline_schedule::one_in_one_out}, {"fill-drain", pipeline_schedule::fill_drain}};
inline constexpr option_word<kernel_time> kernel_words[] = {{"later", kernel_time::later}, {"now", kernel_time::now}};
inline constexpr option_word<completion_mode> completion_words[] = {{"device", completion_mode::device},
                                                                    {"host", completion_mode::host}};

/// Returns the value that `text` means. Throws `errc::invalid_argument`, which names `what` and all words.
template <class T, size_t Size>
T value_of(const option_word<T> (&words)[Size], std::string_view what, std::string_view text) {
  std::string known;
  for (const option_word<T>& word : words) {
    if (text == word.text)
      return word.value;
    known.append(known.empty() ? "" : ", ").append(word.text);
  }
  std::string message(what);
  throw error(errc::invalid_argument,
              message.append(" '").append(text).append("' is not known; known are: ").append(known));
}

/// Returns the word for `value`; empty if it has none.
template <class T, size_t Size>
std::string_view text_of(const option_word<T> (&words)[Size], T value) {
  for (const option_word<T>& word : words)
    if (word.value == value)
      return word.text;
  return {};
}

} // namespace troupe
