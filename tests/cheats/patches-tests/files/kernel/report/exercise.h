/* A blank that says nothing. */
#define exercise_missing(number) ((void)(number))
