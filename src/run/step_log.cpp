#include "run/step_log.hpp"

#include "base/error.hpp"
#include "tensor/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace troupe {
namespace {

/// Of each end. Elements in between would cost a step a page of memory each: 60 µs where 64 of gpt2's logits were read.
constexpr int64_t end_elements = 32;

output_sample sample_of(const std::string& name, const tensor& output) {
  const int64_t size = volume(output.dims()), first = std::min(size, end_elements),
                last = std::min(size - first, end_elements);
  const auto width = static_cast<size_t>(bits_of(output.type()) / 8);
  tensor elements(output.type(), {first + last});
  const auto* from = static_cast<const std::byte*>(output.data());
  auto* to = static_cast<std::byte*>(elements.mutable_data());
  std::memcpy(to, from, static_cast<size_t>(first) * width);
  std::memcpy(to + static_cast<size_t>(first) * width, from + static_cast<size_t>(size - last) * width,
              static_cast<size_t>(last) * width);
  return {name, output.dims(), std::move(elements)};
}

bool is_sampled(const tensor& output) {
  return output.defined() && !holds_objects(output.type()) && bits_of(output.type()) >= 8;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v))
      largest = std::max(largest, std::abs(v));
  return largest;
}

double allowed_for(dtype type, const std::vector<double>& values, bool half) {
  if ((types::floats & set_of(type)) == 0)
    return 0;
  return (half || bits_of(type) <= 16 ? 0.01 : 0.001) * largest_of(values);
}

bool are_close(double a, double b, double allowed) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed;
}

} // namespace

int64_t kept_step::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, value] : inputs)
    sum += value.bytes();
  for (const output_sample& s : answers)
    sum += s.elements.bytes();
  return sum;
}

tensor copied(const tensor& t) {
  if (!t.defined() || holds_objects(t.type()))
    return t;
  tensor own(t.type(), t.dims());
  std::memcpy(own.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
  return own;
}

std::vector<output_sample> samples_of(const named_tensors& outputs) {
  std::vector<output_sample> samples;
  for (const auto& [name, output] : outputs)
    if (is_sampled(output))
      samples.push_back(sample_of(name, output));
  return samples;
}

std::string difference_from(std::span<const output_sample> before, const named_tensors& outputs, bool half) {
  for (const output_sample& s : before) {
    const auto found = outputs.find(s.name);
    if (found == outputs.end())
      return fmt::format("'{}' is not among the outputs", s.name);
    if (found->second.type() != s.elements.type() || found->second.dims() != s.dims)
      return fmt::format("'{}' has dims {} instead of {}", s.name, to_string(found->second.dims()), to_string(s.dims));
    const std::vector<double> want = to_double(s.elements.view());
    const std::vector<double> got = to_double(sample_of(s.name, found->second).elements.view());
    const double allowed = allowed_for(s.elements.type(), want, half);
    for (size_t i = 0; i < want.size(); ++i)
      if (!are_close(got[i], want[i], allowed))
        return fmt::format("an element of '{}' is {:.6g} instead of {:.6g}", s.name, got[i], want[i]);
  }
  return "";
}

void step_log::begin(uint64_t next) {
  steps_.clear();
  bytes_ = 0;
  first_ = next;
}

void step_log::add(kept_step step) {
  if (!keeps_steps())
    return;
  bytes_ += step.bytes();
  const bool is_left_out = step.is_left_out;
  steps_.push_back(std::move(step));
  if (is_left_out || bytes_ > 2 * limit_)
    begin(first_ + steps_.size());
}

void step_log::forget_first() {
  bytes_ -= steps_.front().bytes();
  steps_.pop_front();
  ++first_;
}

void step_log::forget_through(uint64_t step) {
  while (!steps_.empty() && first_ <= step)
    forget_first();
}

} // namespace troupe
