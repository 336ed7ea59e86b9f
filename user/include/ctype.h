/* Kinds of characters, in ASCII. */
#pragma once

static inline int isdigit(int character)
{
	return character >= '0' && character <= '9';
}

static inline int isupper(int character)
{
	return character >= 'A' && character <= 'Z';
}

static inline int islower(int character)
{
	return character >= 'a' && character <= 'z';
}

static inline int isalpha(int character)
{
	return isupper(character) || islower(character);
}

static inline int isalnum(int character)
{
	return isalpha(character) || isdigit(character);
}

static inline int isspace(int character)
{
	return character == ' ' || (character >= '\t' && character <= '\r');
}

static inline int toupper(int character)
{
	return islower(character) ? character - 'a' + 'A' : character;
}

static inline int tolower(int character)
{
	return isupper(character) ? character - 'A' + 'a' : character;
}
