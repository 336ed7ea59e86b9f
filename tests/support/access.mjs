// A headless Chromium asks axe about pages: node access.mjs MODULES CHROMIUM VISITS.json
//
// A visit: address, width, dark. Prints a JSON list: for each visit its violations, and by how many
// pixels the page is wider than the window.
import { printVisits, violations } from "./visits.mjs";

const [modules, executablePath, visits] = process.argv.slice(2);
const HEIGHT = 800;

async function visit(browser, { address, width, dark }) {
	const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme: dark ? "dark" : "light" });
	await page.goto(address, { waitUntil: "load" });
	if (address.endsWith("?print-pdf")) await page.waitForSelector(".pdf-page");
	const found = await violations(page, modules);
	const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
	await page.close();
	return { violations: found.map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`), overflow };
}

await printVisits(modules, executablePath, visits, visit);
