/*
 * A blob store's device that is a file or a drive of this machine, here or on Linux: pread, pwrite
 * and fsync. With O_DIRECT the store's buffers are aligned as that asks.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "labs/storage/blob/blob.h"

struct file_device {
	struct blob_device device;
	int descriptor;
};

static int descriptor_of(struct blob_device *device)
{
	return ((struct file_device *)device)->descriptor;
}

static int file_read(struct blob_device *device, uint64_t offset, void *to, uint32_t length)
{
	for (uint32_t done = 0; done < length;) {
		ssize_t part = pread(descriptor_of(device), (char *)to + done, length - done,
				     (off_t)(offset + done));

		if (part <= 0)
			return part < 0 ? -errno : -EIO;
		done += (uint32_t)part;
	}
	return 0;
}

static int file_write(struct blob_device *device, uint64_t offset, const void *from,
		      uint32_t length)
{
	for (uint32_t done = 0; done < length;) {
		ssize_t part = pwrite(descriptor_of(device), (const char *)from + done,
				      length - done, (off_t)(offset + done));

		if (part <= 0)
			return part < 0 ? -errno : -EIO;
		done += (uint32_t)part;
	}
	return 0;
}

static int file_sync(struct blob_device *device)
{
	return fsync(descriptor_of(device)) < 0 ? -errno : 0;
}

int blob_device_open(const char *path, bool direct, struct blob_device **device)
{
	struct file_device *file = malloc(sizeof(*file));
	int descriptor = open(path, O_RDWR | (direct ? O_DIRECT : 0));
	off_t size = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END);

	if (!file || size < 0) {
		int error = file ? errno : ENOMEM;

		free(file);
		if (descriptor >= 0)
			close(descriptor);
		return -error;
	}
	file->device = (struct blob_device){ file_read, file_write, file_sync, (uint64_t)size };
	file->descriptor = descriptor;
	*device = &file->device;
	return 0;
}

void blob_device_close(struct blob_device *device)
{
	close(descriptor_of(device));
	free(device);
}
