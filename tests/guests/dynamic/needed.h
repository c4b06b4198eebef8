/* Returns how often the calling thread has called it. */
int needed_calls(void);
