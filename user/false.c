/* false: fails. */
int main(void)
{
	return 1;
}
