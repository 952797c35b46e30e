/* Follows the waits of each until nobody new is reached. */
#include "loadtest/search/waits.h"

bool waits_have_circle(const uint32_t *waits_for, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t reached = waits_for[i], before;
        do {
            before = reached;
            for (size_t n = 0; n < count; n++)
                if (reached & 1u << n)
                    reached |= waits_for[n];
        } while (reached != before);
        if (reached & 1u << i)
            return true;
    }
    return false;
}
