// What the headers of this folder are written with: a block of parameters is a struct in C++ and the uniform block of
// binding 0 in GLSL, a constant is one in both. C++ includes them through src/launch/parameters.hpp, which has the
// types.
#ifndef PARAMETERS
#ifdef __cplusplus
#define PARAMETERS(name) struct name
#define CONSTANT constexpr uint32_t
#else
#define PARAMETERS(name) layout(set = 0, binding = 0, std140) uniform parameters
#define CONSTANT const uint
#endif
#endif
