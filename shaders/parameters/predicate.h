// Predicates of predicate.comp.
#include "block.h"

CONSTANT predicate_equal = 0, predicate_greater = 1, predicate_greater_or_equal = 2, predicate_less = 3,
         predicate_less_or_equal = 4, predicate_both = 5, predicate_either = 6, predicate_differ = 7,
         // From here on: of one operand.
         predicate_negation = 8, predicate_is_nan = 9, predicate_is_inf = 10;

/// Flags: of Equal that its operands are booleans (any byte but 0 is true), of IsInf what it looks for.
CONSTANT predicate_booleans = 1, predicate_positive = 1, predicate_negative = 2;
