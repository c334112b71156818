// What a shared libtroupe exports: the classes and functions of these headers that are marked. All else in it is
// hidden.
#pragma once

#define TROUPE_API __attribute__((visibility("default")))
