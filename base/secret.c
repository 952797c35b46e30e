/* Makes secrets that a person can read out, and compares secrets without revealing their characters by the time that it takes. */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void make_secret(char *ret_secret, size_t length)
{
    static const char LETTERS[] = "abcdefghjkmnpqrstuvwxyz23456789"; /* no two look alike */
    enum {
        COUNT = sizeof LETTERS - 1,
        EVEN = 256 / COUNT * COUNT
    }; /* larger bytes would favour some letters */
    for (size_t i = 0; i < length;) {
        unsigned char byte;
        if (getrandom(&byte, 1, 0) != 1)
            abort(); /* a predictable secret is worse than no service */
        if (byte < EVEN)
            ret_secret[i++] = LETTERS[byte % COUNT];
    }
    ret_secret[length] = '\0';
}

bool same_secret(const char *given, const char *secret)
{
    size_t given_length = strlen(given), length = strlen(secret);
    unsigned char difference = given_length != length;
    for (size_t i = 0; i < given_length; i++)
        difference |= (unsigned char)(given[i] ^ secret[i % (length + 1)]);
    return difference == 0;
}
