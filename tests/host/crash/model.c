/* A tree of files as it should be: names and files. */
#include "tests/host/crash/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/ext/shim.h"

struct model *model_make(struct arena *arena, uint32_t names, uint32_t files)
{
	struct model *model = arena_take(arena, sizeof(*model));

	model->names = arena_take(arena, names * sizeof(*model->names));
	model->files = arena_take(arena, files * sizeof(*model->files));
	model->name_room = names;
	model->file_room = files;
	return model;
}

void model_add_name(struct model *model, const char *path, uint32_t file)
{
	if (model->name_count == model->name_room)
		fail("more than %u names", model->name_room);
	model->names[model->name_count++] = (struct model_name){ path, file };
}

uint32_t model_add_file(struct model *model, struct model_file file)
{
	if (model->file_count == model->file_room)
		fail("more than %u files", model->file_room);
	model->files[model->file_count] = file;
	return model->file_count++;
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(((const struct model_name *)one)->path,
		      ((const struct model_name *)other)->path);
}

void model_sort(struct model *model)
{
	qsort(model->names, model->name_count, sizeof(*model->names), compare_names);
}

/* The root is "", and may be "/". */
struct model_name *model_name_of(const struct model *model, const char *path)
{
	if (strcmp(path, "/") == 0)
		path = "";
	for (uint32_t i = 0; i < model->name_count; i++)
		if (strcmp(model->names[i].path, path) == 0)
			return &model->names[i];
	return NULL;
}

const struct model_file *model_find(const struct model *model, const char *path)
{
	const struct model_name *name = model_name_of(model, path);

	return name != NULL ? &model->files[name->file] : NULL;
}

struct model *model_copy(struct arena *arena, const struct model *from)
{
	struct model *model = model_make(arena, from->name_count + 2, from->file_count + 2);

	memcpy(model->names, from->names, from->name_count * sizeof(*from->names));
	memcpy(model->files, from->files, from->file_count * sizeof(*from->files));
	model->name_count = from->name_count;
	model->file_count = from->file_count;
	return model;
}

static uint32_t sum_of(const uint8_t *value, uint32_t length)
{
	uint32_t sum = 2166136261u; /* FNV-1a */

	for (uint32_t i = 0; i < length; i++)
		sum = (sum ^ value[i]) * 16777619u;
	return sum;
}

/* The entry of a name, or the end of the text. */
static const char *entry_of(const char *attributes, const char *name)
{
	size_t length = strlen(name);

	while (*attributes != '\0' &&
	       (strncmp(attributes, name, length) != 0 || attributes[length] != '='))
		attributes = strchr(attributes, ';') + 1;
	return attributes;
}

bool model_has_attribute(const struct model_file *file, const char *name)
{
	return file->attributes != NULL && *entry_of(file->attributes, name) != '\0';
}

const char *model_set_attribute(struct arena *arena, const char *attributes, const char *name,
				const uint8_t *value, uint32_t length)
{
	const char *old = attributes != NULL ? attributes : "", *same = entry_of(old, name);
	char *text = arena_take(arena, strlen(old) + strlen(name) + 32), *at = text;
	char entry[MODEL_PATH] = "";

	if (value != NULL)
		snprintf(entry, sizeof(entry), "%s=%u:%08x;", name, length, sum_of(value, length));
	while (*old != '\0') {
		size_t size = (size_t)(strchr(old, ';') + 1 - old);

		if (*entry != '\0' && strcmp(entry, old) < 0) {
			at = stpcpy(at, entry);
			*entry = '\0';
		}
		if (old != same)
			at = (char *)memcpy(at, old, size) + size;
		old += size;
	}
	strcpy(at, entry);
	return text;
}
