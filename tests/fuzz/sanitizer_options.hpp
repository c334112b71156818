// Options of the sanitizers of every fuzz target. Included once by each.
#pragma once

/// More memory than there may be is an error to catch, as without a sanitizer, not the end; freed memory is kept from
/// use for a while.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:quarantine_size_mb=32:detect_stack_use_after_return=0";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
