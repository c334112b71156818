// What most kernels share.
#ifndef TROUPE_COMMON
#define TROUPE_COMMON

/// The index of this group among those of launch.cpp's flat_groups.
uint flat_group() {
  return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

/// A define, since glslang takes no bit cast as the initialiser of a constant.
#define infinity uintBitsToFloat(0x7f800000u)

#endif
